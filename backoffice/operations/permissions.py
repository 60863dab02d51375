"""What a role can allow a person to do to operations. `models.Operation` declares them to Django."""

VIEW = "operations.view_operation"
PREPARE = "operations.prepare_operation"
PROPOSE = "operations.propose_change"
APPROVE = "operations.approve_operation"
RELEASE = "operations.release_operation"
