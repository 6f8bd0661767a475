"""Search over settings and seeds: which trials to run, where they run, which stop early, what came out.

A trial is one run of train.py in a folder of its own. All decisions follow from these folders, so a search
that is killed and started again decides the same.
"""
