"""URLs of reports, exports and schedules."""

from django.urls import path

from backoffice.reports.pages import exports, report, schedules

app_name = "reports"
urlpatterns = [
    path("", exports.report_list, name="list"),
    path("exports/", exports.exports, name="exports"),
    path("exports/<uuid:pk>/", exports.export, name="export"),
    path("exports/<uuid:pk>/progress/", exports.progress, name="progress"),
    path("exports/<uuid:pk>/cancel/", exports.cancel, name="cancel"),
    path("exports/<uuid:pk>/repeat/", exports.repeat, name="repeat"),
    path("exports/<uuid:pk>/remove/", exports.remove, name="remove_export"),
    path("exports/<uuid:pk>/file/", exports.download, name="download"),
    path("schedules/", schedules.schedules, name="schedules"),
    path("schedules/<int:pk>/", schedules.schedule, name="schedule"),
    path("schedules/<int:pk>/pause/", schedules.pause, name="pause"),
    path("schedules/<int:pk>/resume/", schedules.resume, name="resume"),
    path("schedules/<int:pk>/remove/", schedules.remove, name="remove"),
    path("<slug:name>.csv", report.download_csv, name="csv"),
    path("<slug:name>/", report.report, name="report"),
    path("<slug:name>/size/", report.file_size, name="size"),
    path("<slug:name>/schedule/", schedules.new_schedule, name="new_schedule"),
]
