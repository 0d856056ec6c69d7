"""What people read: each error once in `errors.md`, and whole runs in `runs.md`.

`make wording` writes the pages from the package. To change a sentence, change it in the package,
run `make wording`, and read the difference. No other test checks a sentence.
"""
