"""The form of what the approval policies require of recipients."""

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from backoffice.core.web.field_errors import PageForm
from backoffice.core.web.formatting import format_amount
from backoffice.governance.policy_forms import AmountField
from backoffice.policies.document import Ceiling, Cooling, RecipientRequirements
from backoffice.policies.sentences import kind_name
from backoffice.settings_values import KINDS_THAT_PAY, MOST_COOLING_HOURS
from payments_gateway import CURRENCIES
from payments_gateway.money import AmountError, check_quantity


class RequirementsForm(PageForm):
    """The kinds that pay approved recipients only, and the cooling of new and changed ones."""

    approved_only = forms.MultipleChoiceField(
        label=_("Pay approved recipients only"),
        required=False,
        help_text=_("Payments of these kinds to anybody else are refused."),
        widget=forms.CheckboxSelectMultiple,
    )
    hours = forms.IntegerField(
        label=_("Cooling-off period in hours"),
        required=False,
        min_value=1,
        max_value=MOST_COOLING_HOURS,
        help_text=_(
            "An approved recipient that is new or changed cannot be paid before the end of this period. Empty: no "
            "cooling-off period."
        ),
    )
    extra_approval = forms.BooleanField(
        label=_("Allow one more approval instead of cooling-off"), required=False
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.requirements: RecipientRequirements | None = None
        kinds: Any = self.fields["approved_only"]
        kinds.choices = [(kind, kind_name(kind)) for kind in KINDS_THAT_PAY]
        for code in CURRENCIES:
            label = gettext("Allowed during cooling-off, {currency}").format(currency=code)
            self.fields[f"ceiling_{code}"] = AmountField(label=label, required=False, max_length=40)

    @property
    def ceiling_fields(self) -> list[forms.BoundField]:
        return [self[f"ceiling_{code}"] for code in CURRENCIES]

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        ceilings = [one for code in CURRENCIES if (one := self._ceiling(code)) is not None]
        hours, extra = values.get("hours"), values.get("extra_approval", False)
        if not hours and not self.errors and (ceilings or extra):
            self.add_error("hours", gettext("Enter the hours, or clear the other cooling-off fields."))
        if not self.errors:
            cooling = Cooling(hours=hours, ceilings=tuple(ceilings), extra_approval=extra) if hours else None
            self.requirements = RecipientRequirements(approved_only=values["approved_only"], cooling=cooling)
        return values

    def _ceiling(self, code: str) -> Ceiling | None:
        name = f"ceiling_{code}"
        amount = self.cleaned_data.get(name)
        if amount is None:
            return None
        try:
            check_quantity(amount, code)
        except AmountError as exc:
            self.add_error(name, str(exc))
            return None
        return Ceiling(currency=code, amount=amount)


def requirements_initial(required: RecipientRequirements) -> dict[str, Any]:
    """The values of the form."""
    cooling = required.cooling
    ceilings = cooling.ceilings if cooling else ()
    return {
        "approved_only": list(required.approved_only),
        "hours": cooling.hours if cooling else None,
        "extra_approval": bool(cooling and cooling.extra_approval),
        **{f"ceiling_{one.currency}": format_amount(one.amount, one.currency) for one in ceilings},
    }
