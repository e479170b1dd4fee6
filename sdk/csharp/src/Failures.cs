using System;

namespace Sso
{
    /// <summary>A user JWT is not accepted.</summary>
    public sealed class PlayerRefused : Exception
    {
        /// <summary>malformed, signature, unknown_key, issuer, expired, factor or unavailable.</summary>
        public string Reason { get; }

        public PlayerRefused(string reason, string message) : base(message)
        {
            Reason = reason;
        }
    }

    /// <summary>A request to the service did not succeed.</summary>
    public sealed class RequestFailed : Exception
    {
        /// <summary>refused, invalid, unavailable or not_a_service.</summary>
        public string Reason { get; }
        public int Status { get; }

        public RequestFailed(string reason, string message, int status = 0) : base(message)
        {
            Reason = reason;
            Status = status;
        }
    }

    /// <summary>A sign-in of a web site is not accepted.</summary>
    public sealed class SignInRefused : Exception
    {
        /// <summary>state, denied, code or token.</summary>
        public string Reason { get; }

        public SignInRefused(string reason, string message) : base(message)
        {
            Reason = reason;
        }
    }

    /// <summary>The request of a webhook is not accepted.</summary>
    public sealed class WebhookRefused : Exception
    {
        /// <summary>malformed, signature or old.</summary>
        public string Reason { get; }

        public WebhookRefused(string reason, string message) : base(message)
        {
            Reason = reason;
        }
    }
}
