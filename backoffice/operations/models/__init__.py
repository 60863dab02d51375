"""The tables of operations. Importing this package declares them to Django; import a model from the module that
defines it.
"""

from backoffice.operations.models import monitoring as monitoring
from backoffice.operations.models import operations as operations
from backoffice.operations.models import reconciliation as reconciliation
from backoffice.operations.models import saved_items as saved_items
