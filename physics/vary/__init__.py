"""Numbers of the model that differ between environments, and what follows from them.

Here is said which fields can vary, how they enter a program in place of constants, and how a program of its
own derives what MuJoCo's compiler would.
"""
