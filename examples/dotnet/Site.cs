// A web site in C# whose users sign in at the service. It needs the framework and sdk/csharp, and no other packages.
using System;
using System.Collections.Concurrent;
using System.Net;
using System.Security.Cryptography;
using System.Text;
using System.Threading.Tasks;
using Sso;

internal static class Site
{
    private const string Issuer = "http://localhost:8000";
    private const string ClientId = "csharp-site";
    private const string Address = "http://127.0.0.1:3003";

    // What the site knows about a browser. In production, keep it in a database and let it end.
    private sealed class Session
    {
        public SignInRequest Request;
        public SignedInUser User;
    }

    private static readonly ConcurrentDictionary<string, Session> Sessions = new ConcurrentDictionary<string, Session>();
    private static readonly WebSignIn SignIn =
        new WebSignIn(Issuer, ClientId, Environment.GetEnvironmentVariable("CLIENT_SECRET"), Address + "/callback");

    private static void Main()
    {
        var listener = new HttpListener();
        listener.Prefixes.Add(Address + "/");
        listener.Start();
        Console.WriteLine("Open " + Address);
        while (true)
        {
            HttpListenerContext context = listener.GetContext();
            Task.Run(() => Answer(context));
        }
    }

    private static async Task Answer(HttpListenerContext context)
    {
        try
        {
            switch (context.Request.Url.AbsolutePath)
            {
                case "/": Home(context); break;
                case "/login": await Login(context); break;
                case "/callback": await Callback(context); break;
                case "/logout": await Logout(context); break;
                default: Write(context, 404, "There is no such page."); break;
            }
        }
        catch (SignInRefused refused)
        {
            Write(context, 400, refused.Message + ". Open /login again.");
        }
        catch (RequestFailed failed)
        {
            Write(context, 502, failed.Message);
        }
        catch (Exception error)
        {
            Console.Error.WriteLine(error);
            context.Response.Abort();
        }
    }

    private static void Home(HttpListenerContext context)
    {
        SignedInUser user = Read(context)?.User;
        Write(context, 200, user == null
            ? "Not signed in. Open " + Address + "/login"
            : "Signed in as " + user.Name + " (" + user.Email + ").");
    }

    private static async Task Login(HttpListenerContext context)
    {
        SignInRequest request = await SignIn.Begin();
        Store(context, new Session { Request = request });
        Redirect(context, request.Url);
    }

    private static async Task Callback(HttpListenerContext context)
    {
        var query = context.Request.QueryString;
        SignedInUser user = await SignIn.Complete(Read(context)?.Request, query["state"], query["code"], query["error"]);
        Store(context, new Session { User = user }); // a new session, so that nobody knows its cookie
        Redirect(context, "/");
    }

    private static async Task Logout(HttpListenerContext context)
    {
        Store(context, new Session());
        Redirect(context, await SignIn.LogoutUrl(Address + "/"));
    }

    private static Session Read(HttpListenerContext context)
    {
        Cookie cookie = context.Request.Cookies["session"];
        return cookie != null && Sessions.TryGetValue(cookie.Value, out Session session) ? session : null;
    }

    private static void Store(HttpListenerContext context, Session session)
    {
        Cookie old = context.Request.Cookies["session"];
        if (old != null) Sessions.TryRemove(old.Value, out Session _);
        var bytes = new byte[32];
        using (RandomNumberGenerator generator = RandomNumberGenerator.Create()) generator.GetBytes(bytes);
        string id = BitConverter.ToString(bytes).Replace("-", "");
        Sessions[id] = session;
        context.Response.AddHeader("Set-Cookie", "session=" + id + "; Path=/; HttpOnly; SameSite=Lax");
    }

    private static void Redirect(HttpListenerContext context, string url)
    {
        context.Response.Redirect(url);
        context.Response.Close();
    }

    private static void Write(HttpListenerContext context, int status, string text)
    {
        context.Response.StatusCode = status;
        context.Response.ContentType = "text/plain; charset=utf-8";
        context.Response.Close(Encoding.UTF8.GetBytes(text + "\n"), false);
    }
}
