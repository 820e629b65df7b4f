"""Django: an order and its job, which is submitted once the order is stored.

python django_shop.py migrate --run-syncdb
python django_shop.py runserver
"""

import sys
from functools import partial

import django
from django.conf import settings

settings.configure(
    ROOT_URLCONF=__name__,
    SECRET_KEY="of this example",
    ALLOWED_HOSTS=["*"],
    INSTALLED_APPS=["django_orders"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "orders.db"}},
)
django.setup()

from django.db import transaction  # noqa: E402
from django.http import HttpRequest, JsonResponse  # noqa: E402
from django.urls import path  # noqa: E402
from django.views.decorators.csrf import csrf_exempt  # noqa: E402
from django_orders.models import Order  # noqa: E402
from shop import refund  # noqa: E402


@csrf_exempt
@transaction.atomic
def request_refund(request: HttpRequest, order: int) -> JsonResponse:
    stored, created = Order.objects.get_or_create(number=order)
    if created:
        transaction.on_commit(partial(submit, order))
    return JsonResponse({"order": stored.number, "created": created}, status=202)


def submit(order: int) -> None:
    refund.with_options(key=f"order-{order}").submit(order=order)


urlpatterns = [path("orders/<int:order>/refund", request_refund)]

if __name__ == "__main__":
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
