"""What bodies of the control API have in common: strict, nothing unknown; null says something, such as "never"."""

from pydantic import BaseModel, ConfigDict


class ControlBody(BaseModel):
    """A body of the control API: options spelled as on the command line, what repeats the service as on the wire."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
