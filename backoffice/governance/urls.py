"""URLs of Settings, Team, Recipients and Approval policies; under /settings/."""

from django.urls import path
from django.views.generic import RedirectView

from backoffice.governance.pages import (
    access_review,
    bootstrap,
    delegations,
    handover,
    invitations,
    joint_handover,
    person,
    policies,
    policy_submission,
    recipients,
    team,
)

app_name = "governance"
urlpatterns = [
    path("team/", team.team, name="team"),
    path("team/groups/", team.group_list, name="groups"),
    path("team/invite/", invitations.invite, name="invite"),
    path("team/invited/", invitations.invited, name="invited"),
    path("team/first-steps/", bootstrap.bootstrap, name="bootstrap"),
    path("team/first-steps/<int:pk>/link/", bootstrap.renew_link, name="renew_link"),
    path("team/invited/live/", invitations.invited_live, name="invited_live"),
    path("team/links/", joint_handover.joint_handover, {"part": "link"}, name="links"),
    path("team/start-codes/", joint_handover.joint_handover, {"part": "code"}, name="start_codes"),
    path("team/links/<uuid:pk>/", handover.handover, name="handover"),
    path("team/access-review/", access_review.access_review, name="access_review"),
    path("team/access-review/<uuid:pk>/", access_review.reviewed, name="reviewed"),
    path("team/<int:pk>/", person.person, name="person"),
    path("team/<int:pk>/deactivate/", person.act, {"action": "deactivate"}, name="deactivate"),
    path("team/<int:pk>/end-sessions/", person.act, {"action": "end_sessions"}, name="end_sessions"),
    path("recipients/", recipients.recipients, name="recipients"),
    path("recipients/import/", recipients.recipient_files, name="recipient_files"),
    path("recipients/<uuid:pk>/", recipients.recipient, name="recipient"),
    # the pages that saved bank accounts had in earlier releases
    path(
        "recipients/<int:pk>/",
        RedirectView.as_view(url="/settings/recipients/", permanent=True),
        name="recipient_before",
    ),
    path("delegations/", delegations.delegations, name="delegations"),
    path("delegations/<int:pk>/end/", delegations.end, name="end_delegation"),
    path("policies/", policies.in_effect, name="policies"),
    path("policies/versions/<int:number>/", policies.version, name="policy_version"),
    path("policies/try/", policies.try_operation, name="policy_try"),
    path("policies/draft/", policies.draft, name="policy_draft"),
    path("policies/draft/rules/new/", policies.edit_rule, name="policy_new_rule"),
    path("policies/draft/rules/<int:number>/", policies.edit_rule, name="policy_rule"),
    path("policies/draft/rules/<int:number>/move/", policies.move_rule, name="policy_move_rule"),
    path("policies/draft/lists/", policies.edit_lists, name="policy_lists"),
    path("policies/draft/recipients/", policies.edit_requirements, name="policy_requirements"),
    path("policies/draft/copy/<uuid:pk>/", policies.copy_proposal, name="policy_copy"),
    path("policies/draft/discard/", policies.discard, name="policy_discard"),
    path("policies/draft/review/", policy_submission.review, name="policy_review"),
    path("policies/draft/propose/", policy_submission.propose, name="policy_propose"),
    path("policies/draft/replay/", policies.replay_draft, name="policy_replay"),
    path("policies/proposals/<uuid:pk>/", policies.proposal, name="policy_proposal"),
    path("policies/proposals/<uuid:pk>/replay/", policies.replay_proposal, name="policy_proposal_replay"),
]
