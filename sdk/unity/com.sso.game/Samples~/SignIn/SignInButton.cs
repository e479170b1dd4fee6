using System;
using System.Threading;
using Sso;
using UnityEngine;

/// <summary>Put this on an object of a scene, and call SignIn from a button.</summary>
public class SignInButton : MonoBehaviour
{
    private const string DeviceName = "sign_in.device";
    public string baseUrl = "http://localhost:8000";
    private readonly CancellationTokenSource given = new CancellationTokenSource();
    private string shown = "";
    private Game game;

    private void Awake()
    {
        game = new Game(baseUrl, new UnityTransport(), new PlayerPrefsStore(), Device());
    }

    /// <summary>A random name of this device. Unity's own id can change, and is the same for all players on WebGL.</summary>
    private static string Device()
    {
        if (!PlayerPrefs.HasKey(DeviceName)) PlayerPrefs.SetString(DeviceName, Guid.NewGuid().ToString("N"));
        return PlayerPrefs.GetString(DeviceName);
    }

    public async void SignIn()
    {
        try
        {
            Player player = await game.SignIn(new SignInOptions { ShowLink = Show, Token = given.Token });
            shown = "Hello, " + player.Nick;
        }
        catch (SignInFailed failed)
        {
            shown = "Not signed in: " + failed.Reason;
        }
    }

    private void Show(string url, string words)
    {
        shown = "The page must show: " + words;
        Application.OpenURL(url);
    }

    private void OnGUI()
    {
        GUILayout.Label(shown);
    }

    private void OnDestroy()
    {
        given.Cancel(); // the link is of no use any more
    }
}
