"""URLs of the team: people, groups, one-time links, access reviews, and the first steps; under /settings/team/."""

from django.urls import path

from backoffice.governance.pages import access_review, bootstrap, handover, person, team

app_name = "governance"
urlpatterns = [
    path("", team.team, name="team"),
    path("groups/", team.group_list, name="groups"),
    path("first-steps/", bootstrap.bootstrap, name="bootstrap"),
    path("links/<uuid:pk>/", handover.handover, name="handover"),
    path("access-review/", access_review.access_review, name="access_review"),
    path("access-review/<uuid:pk>/", access_review.reviewed, name="reviewed"),
    path("<int:pk>/", person.person, name="person"),
    path("<int:pk>/deactivate/", person.act, {"action": "deactivate"}, name="deactivate"),
    path("<int:pk>/end-sessions/", person.act, {"action": "end_sessions"}, name="end_sessions"),
]
