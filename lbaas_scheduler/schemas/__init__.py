"""How what callers send is judged: attribute maps as data (JSON Schema), and pure functions over them.

:mod:`.attributes` has the types and :func:`~.attributes.accept`; :mod:`.common` has what several nouns share;
:mod:`.checker` is JSON Schema as this package reads it; :mod:`.access` says whose an object is, and what is asked of a list.
Each noun's own map lies beside the code that keeps the noun.
"""
