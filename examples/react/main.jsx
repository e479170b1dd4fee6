// A React app in the browser whose users sign in at the service: a public client with PKCE.
import React from "react";
import { createRoot } from "react-dom/client";
import { AuthProvider, useAuth } from "react-oidc-context";

const settings = {
  authority: "http://localhost:8000",
  client_id: "react-app",
  redirect_uri: `${location.origin}/`,
  post_logout_redirect_uri: `${location.origin}/`,
  scope: "openid email profile offline_access", // offline_access: a refresh token, for automatic renewal
  loadUserInfo: true,
  onSigninCallback: () => history.replaceState({}, "", "/"), // removes the code from the address
};

function App() {
  const auth = useAuth();
  if (auth.isLoading) return <p>…</p>;
  if (auth.error) return <p>{auth.error.message}</p>;
  if (!auth.user) return <button onClick={() => auth.signinRedirect()}>Sign in</button>;
  const { name, email } = auth.user.profile;
  return (
    <>
      <p>{`Signed in as ${name} (${email}).`}</p>
      <button onClick={() => auth.signoutRedirect()}>Sign out</button>
    </>
  );
}

createRoot(document.getElementById("root")).render(<AuthProvider {...settings}><App /></AuthProvider>);
