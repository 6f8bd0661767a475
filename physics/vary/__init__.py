"""Varied fields: numbers of the model that differ between environments, and the constants they determine.

This package lists the fields that can vary and reads them in a program instead of constants. A separate
program derives from them what MuJoCo's compiler would derive.
"""
