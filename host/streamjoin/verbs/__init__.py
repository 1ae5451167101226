"""What the verbs of the command line do, as functions: ``sj.advise``, ``sj.compare``."""
