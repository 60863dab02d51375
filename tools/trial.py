"""`make trial`: an empty installation on this machine, to set up as a new merchant would, against a simulated provider.

Nobody has an account: it prints the one-time link of the first administrator, and everything after that happens on
pages. Nothing of the demo is installed. Unlike in production, a person who gets new rights can use them at once.
"""

import re
import sys

from tools.demo import arguments_of, optional_reads, run_until_stopped
from tools.processes import Stack, StackError

FIRST_ADMINISTRATOR = ("ada@example.com", "Ada Obi")
NO_WAITING = {"COUNTERSIGN_NEW_RIGHTS_WAIT_HOURS": "0"}
_LINK = re.compile(r"http\S+/account/set-up/[\w-]+/")


def main() -> int:
    """Run the trial until Ctrl-C."""
    parser = arguments_of("trial", __doc__ or "")
    email, name = FIRST_ADMINISTRATOR
    parser.add_argument("--email", default=email, help="of the first administrator")
    parser.add_argument("--name", default=name, help="of the first administrator")
    arguments = parser.parse_args()
    stack = Stack(
        arguments.folder.resolve(),
        arguments.port,
        arguments.sandbox_port,
        profile=arguments.profile,
        extra={**NO_WAITING, **optional_reads(arguments.profile)},
        is_demo=False,
    )
    is_new = stack.is_new

    def welcome(running: Stack, seconds: float) -> str:
        link = create_first_administrator(running, arguments.email, arguments.name) if is_new else ""
        return _welcome(running, seconds, link)

    return run_until_stopped(stack, "trial", welcome)


def create_first_administrator(stack: Stack, email: str, name: str) -> str:
    """The one-time link of the first account. Raises StackError."""
    printed = stack.manage("staff", "create", email, "--name", name, "--role", "Administrator")
    found = _LINK.search(printed)
    if found is None:
        raise StackError(f"`manage.py staff create` printed no link:\n{printed}")
    return found[0]


def _welcome(stack: Stack, seconds: float, link: str) -> str:
    begin = (
        f"Begin here     {link}\n"
        "                 The one-time link of the first administrator. It is shown only now."
        if link
        else f"Open           {stack.web}\n"
        f"                 To begin again with an empty installation, stop and delete {stack.folder}"
    )
    return f"""
Countersign is ready ({seconds:.0f} s).  The provider is simulated: no real money moves.

  {begin}
  Steps          docs/operator/first-steps.md
  One-time code  To send, enter the provider's one-time code (not the authenticator code). It is shown, with the rest of
                 the simulation, at {stack.sandbox}/_sandbox/
  Mails          {stack.folder / "mailbox"} has a file for each mail that would have been sent
  Data           {stack.folder}
  Logs           {stack.folder / "logs"}

Press Ctrl-C to stop.
"""


if __name__ == "__main__":
    sys.exit(main())
