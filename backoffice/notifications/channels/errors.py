"""Why a message could not be delivered."""

from typing import Any

from backoffice.notifications.models import Problem, problem


class DeliveryError(Exception):
    """It was not delivered, as far as known, and is tried again. `problem` holds the code and its parameters."""

    def __init__(self, code: Problem, **parameters: Any) -> None:
        super().__init__(code.value)
        self.problem = problem(code, **parameters)
