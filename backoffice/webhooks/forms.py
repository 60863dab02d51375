"""What deliveries can be narrowed to."""

from django import forms

from backoffice.core.period import PeriodForm
from backoffice.webhooks.states import DeliveryVerification


class DeliveriesForm(PeriodForm):
    """The filters of a report of deliveries. Every field may stay empty."""

    verdict = forms.ChoiceField(required=False, choices=[("", "Any verdict"), *DeliveryVerification.choices])
    event = forms.CharField(required=False, max_length=200, label="Event", help_text="Its name, in any case")
    field_order = ("verdict", "event", "since", "until")
