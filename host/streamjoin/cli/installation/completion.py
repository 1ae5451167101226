"""``streamjoin completion``: lets a shell complete verbs, flags, engines, workloads.

A shell asks the command itself at each TAB, so engines of other packages and one's own
experiments complete as well. A command that no shell asks does not import argcomplete.
"""

import argparse
import os
import sys
from collections.abc import Callable

SHELLS = ("bash", "zsh", "fish")
BEGIN_ZSH = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }"
"""A zsh that has not been set up has no completions at all."""

LINE, POINT = "COMP_LINE", "COMP_POINT"
EPILOG = """\
for the shell that runs:
  eval "$(streamjoin completion bash)"
  streamjoin completion fish | source
for every one to come, put that line into ~/.bashrc, ~/.zshrc (with zsh) or
~/.config/fish/config.fish.
"""


class CompletionVerb:
    """Prints what a shell has to run."""

    help = "Prints what makes a shell complete verbs, flags and their values."

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's flags."""
        parser.epilog = EPILOG
        parser.add_argument("shell", choices=SHELLS, help="the shell that is to complete")

    def run(self, args: argparse.Namespace) -> int:
        """Print the script."""
        from argcomplete.shell_integration import shellcode

        script = shellcode(["streamjoin"], shell=args.shell)
        if args.shell == "zsh":  # behind the line that says for whom the file is
            script = script.replace("\n", f"\n{BEGIN_ZSH}\n", 1)
        sys.stdout.write(script + "\n")
        return 0


def answer(build: Callable[[list[str]], argparse.ArgumentParser]) -> None:
    """Answer a shell that asks what can follow, and end.

    Parameters
    ----------
    build : callable
        Makes the parser of a command line, with the flags of its verb.
    """
    import argcomplete
    from argcomplete.lexers import split_line

    line = os.environ.get(LINE, "")
    typed = line[: int(os.environ.get(POINT) or len(line))]
    words = split_line(typed)[3]  # whole words before the one that is typed
    try:
        parser = build(words[1:])
    except (Exception, SystemExit):  # the verb's package is not complete
        parser = build([])
    argcomplete.autocomplete(parser)


VERB = CompletionVerb()
