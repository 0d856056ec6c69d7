"""Every sentence that people read, once: `python -m tests.wording` writes the pages beside this file from the package.

Each module here makes the page of its name: situations, and the exact text that people then read. To change a sentence, change it
in the package, run `make wording`, and read the difference. No other test checks a sentence.
"""
