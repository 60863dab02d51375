"""URLs of Settings, Approval policies."""

from django.urls import path

from backoffice.governance import policies

app_name = "governance"
urlpatterns = [
    path("policies/", policies.in_effect, name="policies"),
    path("policies/versions/<int:number>/", policies.version, name="policy_version"),
    path("policies/try/", policies.try_operation, name="policy_try"),
    path("policies/draft/", policies.draft, name="policy_draft"),
    path("policies/draft/rules/new/", policies.edit_rule, name="policy_new_rule"),
    path("policies/draft/rules/<int:number>/", policies.edit_rule, name="policy_rule"),
    path("policies/draft/rules/<int:number>/move/", policies.move_rule, name="policy_move_rule"),
    path("policies/draft/lists/", policies.edit_lists, name="policy_lists"),
    path("policies/draft/discard/", policies.discard, name="policy_discard"),
    path("policies/draft/propose/", policies.propose, name="policy_propose"),
    path("policies/draft/replay/", policies.replay_draft, name="policy_replay"),
    path("policies/proposals/<uuid:pk>/", policies.proposal, name="policy_proposal"),
    path("policies/proposals/<uuid:pk>/replay/", policies.replay_proposal, name="policy_proposal_replay"),
]
