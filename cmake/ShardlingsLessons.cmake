# Exercises, solutions, mutants and their tests.
