from django.apps import AppConfig
from django.db.models.signals import post_migrate


class AccountsConfig(AppConfig):
    """Staff: accounts, roles, sign-in and sessions."""

    name = "backoffice.accounts"
    label = "accounts"

    def ready(self) -> None:
        from backoffice.accounts.roles import sync_role_permissions

        # Django creates an app's permissions after its migrations; then the roles are synchronised.
        post_migrate.connect(sync_role_permissions, dispatch_uid="accounts.give_permissions")
