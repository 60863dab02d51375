"""The tables of operations. Importing this package registers all models with Django."""

from backoffice.operations.models import batches as batches
from backoffice.operations.models import bulk_releases as bulk_releases
from backoffice.operations.models import holds as holds
from backoffice.operations.models import monitoring as monitoring
from backoffice.operations.models import operations as operations
from backoffice.operations.models import otp as otp
from backoffice.operations.models import reconciliation as reconciliation
from backoffice.operations.models import saved_views as saved_views
from backoffice.operations.models import secret as secret
