"""AuthZEN 1.0 (the Authorization API of the OpenID Foundation): the same answers as ``check``, in the standard form."""
