"""The pages of the site, and those of django-allauth below /accounts/."""

from django.http import HttpResponse
from django.template import engines
from django.urls import include, path

PAGE = """
<h1>Django site</h1>
{% if user.is_authenticated %}
<p>Signed in as {{ user.username }} ({{ user.email }}).</p>
<form method="post" action="{% url 'account_logout' %}">{% csrf_token %}<button>Sign out</button></form>
{% else %}
<form method="post" action="{% url 'openid_connect_login' 'sso' %}">{% csrf_token %}<button>Sign in</button></form>
{% endif %}
"""


def home(request):
    return HttpResponse(engines["django"].from_string(PAGE).render({"user": request.user}, request))


urlpatterns = [path("", home), path("accounts/", include("allauth.urls"))]
