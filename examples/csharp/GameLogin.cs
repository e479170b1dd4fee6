// Game login: show a link and wait until the player has signed in with a browser.
//
//     dotnet run http://localhost:8000
//     dotnet run http://localhost:8000 game.pem      requests signed with that RSA key
//
// Needs only .NET 6 or newer. It is not for Unity, whose profile has neither System.Text.Json nor RSA.ImportFromPem.

using System;
using System.Collections.Generic;
using System.IO;
using System.Net.Http;
using System.Security.Cryptography;
using System.Text.Json;
using System.Threading;
using System.Threading.Tasks;

public class LoginFailed : Exception
{
    public LoginFailed(string message) : base(message) { }
}

public sealed class GameLogin : IDisposable
{
    // Longer than the 30 seconds for which the service holds a poll.
    private readonly HttpClient http = new HttpClient { Timeout = TimeSpan.FromSeconds(45) };
    private readonly string baseUrl;
    private readonly RSA key;
    private string gsid;
    private string evidence = "";

    public GameLogin(string baseUrl, RSA key = null)
    {
        this.baseUrl = baseUrl.TrimEnd('/');
        this.key = key;
    }

    /// <summary>The link for the browser.</summary>
    public string Link { get; private set; }

    /// <summary>The match code, two words that the game must show; the page shows them as well.</summary>
    public string Match { get; private set; }

    /// <summary>Registers a session.</summary>
    public async Task StartAsync(string factor, CancellationToken stop = default)
    {
        var fields = new Dictionary<string, string> { ["factor"] = factor };
        if (key != null) fields["public_key"] = Convert.ToBase64String(key.ExportSubjectPublicKeyInfo());
        var answer = await PostAsync("getGsid", fields, stop);
        if (Text(answer, "status") != "OK") throw new LoginFailed(Text(answer, "error"));
        gsid = Text(answer, "gsid");
        Match = Text(answer, "match");
        Link = baseUrl + "/?gsid=" + gsid;
    }

    /// <summary>Polls until the player has signed in. Returns the login data.</summary>
    public async Task<JsonElement> WaitAsync(CancellationToken stop = default)
    {
        while (true)
        {
            JsonElement answer;
            try
            {
                answer = await PostAsync("getGsidResult", new Dictionary<string, string> { ["gsid"] = gsid }, stop);
            }
            catch (TaskCanceledException) when (!stop.IsCancellationRequested)
            {
                continue; // a timeout: poll again at once
            }
            catch (HttpRequestException)
            {
                await Task.Delay(1000, stop); // the service restarts; the session survives that
                continue;
            }
            switch (Text(answer, "status"))
            {
                case "OK":
                    return answer;
                case "RETRY": // wait even if it is 0: a client that polls too early may be blocked
                    await Task.Delay(TimeSpan.FromSeconds(answer.GetProperty("delay").GetInt32()), stop);
                    break;
                case "CANCELLED":
                    throw new LoginFailed("the sign-in was cancelled");
                default:
                    throw new LoginFailed(Text(answer, "error"));
            }
        }
    }

    /// <summary>Ends the session with "Success", or with "Error", which makes the link unusable.</summary>
    public Task CloseAsync(string status)
    {
        return PostAsync("closeGsid", new Dictionary<string, string> { ["gsid"] = gsid, ["status"] = status }, default);
    }

    public void Dispose()
    {
        http.Dispose();
    }

    private async Task<JsonElement> PostAsync(string name, Dictionary<string, string> fields, CancellationToken stop)
    {
        byte[] body = JsonSerializer.SerializeToUtf8Bytes(fields);
        bool signed = gsid != null && key != null;
        string url = baseUrl + "/proxy/api/gameSession/" + name + (gsid != null && !signed ? evidence : "");
        using (var request = new HttpRequestMessage(HttpMethod.Post, url))
        {
            request.Content = new ByteArrayContent(body);
            request.Content.Headers.Add("Content-Type", "application/json");
            if (signed) // covers exactly these bytes
                request.Headers.Add("Request-Sign", Convert.ToBase64String(
                    key.SignData(body, HashAlgorithmName.SHA256, RSASignaturePadding.Pkcs1)));
            using (var response = await http.SendAsync(request, stop))
            {
                int code = (int)response.StatusCode;
                if (code == 429 || (code >= 502 && code <= 504)) // 429: too many requests
                    throw new HttpRequestException("the service is busy or not available");
                // This secret authenticates later requests. The address does as well while it stays the same.
                if (gsid == null && response.Headers.Location != null) evidence = response.Headers.Location.Query;
                return JsonDocument.Parse(await response.Content.ReadAsByteArrayAsync()).RootElement;
            }
        }
    }

    public static string Text(JsonElement answer, string name)
    {
        JsonElement value;
        return answer.TryGetProperty(name, out value) ? value.ToString() : "";
    }
}

public static class Program
{
    public static int Main(string[] arguments)
    {
        if (arguments.Length == 0 || arguments[0].StartsWith("-"))
        {
            Console.Error.WriteLine("usage: GameLogin BASE_URL [PRIVATE_KEY_FILE]");
            return 2;
        }
        return SignInAsync(arguments).GetAwaiter().GetResult();
    }

    private static async Task<int> SignInAsync(string[] arguments)
    {
        RSA key = null;
        if (arguments.Length > 1)
        {
            key = RSA.Create();
            key.ImportFromPem(File.ReadAllText(arguments[1]));
        }
        using (var stop = new CancellationTokenSource())
        using (var login = new GameLogin(arguments[0], key))
        {
            Console.CancelKeyPress += (_, pressed) => { pressed.Cancel = true; stop.Cancel(); };
            try
            {
                await login.StartAsync("this device", stop.Token);
                Console.WriteLine("Sign in at    " + login.Link + "\nMatch code    " + login.Match);
                JsonElement player = await login.WaitAsync(stop.Token);
                await login.CloseAsync("Success");
                Console.WriteLine("Hello, " + GameLogin.Text(player, "nick") + " (user " + GameLogin.Text(player, "user_id") + ")");
                return 0;
            }
            catch (OperationCanceledException)
            {
                await login.CloseAsync("Error");
                return 1;
            }
            catch (Exception error) when (error is LoginFailed || error is HttpRequestException)
            {
                Console.Error.WriteLine("login failed: " + error.Message);
                return 1;
            }
        }
    }
}
