"""Sign-in and the person's own account, under /account/."""

from django.urls import path

from backoffice.accounts.pages import my_account, sign_in

app_name = "accounts"
urlpatterns = [
    path("", my_account.my_account, name="my_account"),
    path("sign-in/", sign_in.sign_in_page, name="sign_in"),
    path("set-up/<str:token>/", sign_in.set_up, name="set_up"),
    path("sign-out/", sign_in.sign_out, name="sign_out"),
    path("second-factor/", sign_in.second_factor_page, name="second_factor"),
    path("authenticator/", sign_in.enrol, name="enrol"),
    path("recovery-codes/", sign_in.recovery_codes, name="recovery_codes"),
    path("recovery-codes/stored/", sign_in.recovery_codes_stored, name="recovery_codes_stored"),
    path("shortcuts/", my_account.shortcuts, name="shortcuts"),
    path("preferences/", my_account.preferences, name="preferences"),
    path("password/", sign_in.change_password_page, name="password"),
    path("sessions/end-others/", my_account.end_other_sessions, name="end_other_sessions"),
    path("sessions/<str:reference>/end/", my_account.end_session, name="end_session"),
]
