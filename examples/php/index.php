<?php
// A web site in PHP, with the extension curl, whose users sign in at the service.
declare(strict_types=1);

const ISSUER = 'http://localhost:8000';
const CLIENT_ID = 'php-site';
const SITE = 'http://127.0.0.1:8005';

session_start(['cookie_httponly' => true, 'cookie_samesite' => 'Lax']);
$metadata = fetch(ISSUER . '/.well-known/openid-configuration');  // in production, keep it for a day

switch (parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH)) {
    case '/login':
        $_SESSION = ['state' => random(), 'verifier' => random()];
        redirect($metadata['authorization_endpoint'], [
            'response_type' => 'code',
            'client_id' => CLIENT_ID,
            'redirect_uri' => SITE . '/callback',
            'scope' => 'openid email profile',
            'state' => $_SESSION['state'],
            'code_challenge' => base64url(hash('sha256', $_SESSION['verifier'], true)),
            'code_challenge_method' => 'S256',
        ]);
    case '/callback':
        if (!isset($_SESSION['state'], $_GET['state']) || !hash_equals($_SESSION['state'], $_GET['state'])) {
            http_response_code(400);
            exit('This sign-in did not begin in this browser. Open /login again.');
        }
        $tokens = fetch($metadata['token_endpoint'], [
            CURLOPT_USERPWD => CLIENT_ID . ':' . getenv('CLIENT_SECRET'),
            CURLOPT_POSTFIELDS => http_build_query([
                'grant_type' => 'authorization_code',
                'code' => $_GET['code'] ?? '',
                'redirect_uri' => SITE . '/callback',
                'code_verifier' => $_SESSION['verifier'],
            ]),
        ]);
        $bearer = ['Authorization: Bearer ' . $tokens['access_token']];
        session_regenerate_id(true);  // so that nobody knows the cookie
        $_SESSION = ['user' => fetch($metadata['userinfo_endpoint'], [CURLOPT_HTTPHEADER => $bearer])];
        redirect('/');
    case '/logout':
        session_destroy();
        redirect($metadata['end_session_endpoint'], [
            'client_id' => CLIENT_ID,
            'post_logout_redirect_uri' => SITE . '/',
        ]);
    default:
        $user = $_SESSION['user'] ?? null;
        echo $user
            ? htmlspecialchars("Signed in as {$user['name']} ({$user['email']}).") . ' <a href="/logout">Sign out</a>'
            : '<a href="/login">Sign in</a>';
}

/** Sends a request and returns its answer. */
function fetch(string $url, array $options = []): array
{
    $request = curl_init($url);
    curl_setopt_array($request, [CURLOPT_RETURNTRANSFER => true, CURLOPT_TIMEOUT => 10] + $options);
    $text = curl_exec($request);
    if (curl_getinfo($request, CURLINFO_RESPONSE_CODE) !== 200) {
        http_response_code(502);
        exit('The service answered: ' . htmlspecialchars((string) $text));
    }
    return json_decode($text, true, 64, JSON_THROW_ON_ERROR);
}

function redirect(string $url, array $query = []): never
{
    header('Location: ' . $url . ($query ? '?' . http_build_query($query) : ''));
    exit;
}

function random(): string
{
    return base64url(random_bytes(32));
}

function base64url(string $bytes): string
{
    return rtrim(strtr(base64_encode($bytes), '+/', '-_'), '=');
}
