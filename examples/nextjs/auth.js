// A web site with Next.js and Auth.js whose users sign in at the service.
import NextAuth from "next-auth";

export const { handlers, auth, signIn, signOut } = NextAuth({
  providers: [
    {
      id: "sso",
      name: "SSO",
      type: "oidc",
      issuer: "http://localhost:8000",
      clientId: "nextjs-site",
      clientSecret: process.env.CLIENT_SECRET,
      checks: ["pkce", "state", "nonce"],
    },
  ],
});
