"""Changes of one place in a module that decides, each of which a test of that module must notice.

``scripts/mutants`` runs them. mutmut and cosmic-ray start a process for each change, which takes seconds here, because
the tests import the whole service. This runner imports everything once. Then it forks a process for each change, which
exchanges the code of the module and runs its tests until the first one fails.
"""
