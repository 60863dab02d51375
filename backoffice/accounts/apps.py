from django.apps import AppConfig
from django.db.models.signals import post_migrate


class AccountsConfig(AppConfig):
    """Staff: who they are, what they may do, and how they prove it."""

    name = "backoffice.accounts"
    label = "accounts"

    def ready(self) -> None:
        from backoffice.accounts.roles import sync_role_permissions

        # Django creates an application's permissions after its migrations; the roles get theirs right behind.
        post_migrate.connect(sync_role_permissions, dispatch_uid="accounts.give_permissions")
