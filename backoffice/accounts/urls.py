"""Sign-in and one's own account, under /account/."""

from django.urls import path

from backoffice.accounts.views import me, second_factor, sign_in

app_name = "accounts"
urlpatterns = [
    path("", me.me, name="me"),
    path("sign-in/", sign_in.sign_in, name="sign_in"),
    path("sign-out/", sign_in.sign_out, name="sign_out"),
    path("second-factor/", second_factor.second_factor, name="second_factor"),
    path("authenticator/", second_factor.enrol, name="enrol"),
    path("recovery-codes/", second_factor.recovery_codes, name="recovery_codes"),
    path("recovery-codes/kept/", second_factor.recovery_codes_kept, name="recovery_codes_kept"),
    path("preferences/", me.preferences, name="preferences"),
    path("password/", me.password, name="password"),
    path("sessions/end-others/", me.end_other_sessions, name="end_other_sessions"),
    path("sessions/<str:reference>/end/", me.end_session, name="end_session"),
]
