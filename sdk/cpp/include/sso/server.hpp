// For game servers: verifies who a player is, asks what players may do, follows changes, and verifies webhooks.
//
// Calls block. Objects may be used by several threads at once. No exception leaves this interface.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sso/result.hpp"
#include "sso/trust.hpp"

namespace sso {

enum class Refusal {
    malformed,    // not a user JWT, or not an event
    signature,    // not signed by the service
    unknown_key,  // signed with a key that the service does not publish
    issuer,       // of another service
    expired,      // the user JWT has ended
    factor,       // of another device
    old,          // the event was sent more than five minutes ago: it may be a recorded one
    unavailable,  // the keys of the service could not be fetched
};

const char* name_of(Refusal refusal);

struct User {
    std::string user_id;
    std::string nick;
    std::string auth;                 // how the user was authenticated, such as "gsid"
    std::int64_t application_id = 0;  // 0: of no application
    std::int64_t expires = 0;         // Unix seconds
};

// Verifies user JWTs offline. The keys of the service are fetched at the first JWT, every five minutes, and for a key that is
// not known yet, but for that at most every 10 seconds. While the service is away, the keys stay usable.
class Verifier {
public:
    // `issuer` is the address of the service in its JWTs, if the game server reaches it by another one.
    explicit Verifier(std::string base_url, std::string issuer = "");
    ~Verifier();
    Verifier(const Verifier&) = delete;
    Verifier& operator=(const Verifier&) = delete;

    // With a factor, the JWT must have been issued to this device; an empty text is no device. Without one, any device is
    // accepted. `now` is Unix seconds; 0: by the clock.
    Outcome<User, Refusal> verify(const std::string& jwt, std::optional<std::string_view> factor = std::nullopt,
                                  std::int64_t now = 0);

private:
    struct State;
    std::unique_ptr<State> state_;
};

enum class Problem {
    refused,        // the client may not ask this, or its id or secret is wrong
    invalid,        // a wrong field
    unavailable,    // the service cannot be reached, or is overloaded
    not_a_service,  // the address does not belong to the service
    stopped,        // by `Service::stop`
};

const char* name_of(Problem problem);

struct Trouble {
    Problem problem;
    std::string message;  // for developers
};

struct Question {
    std::string user_id;
    std::int64_t application_id;
    std::string rule;
};

struct Change {
    std::string id;    // the place in the stream; store it, and follow from there
    std::string type;  // such as "permissions_changed" or "user_banned"; "reset": read again what you keep
    std::string user_id;
    std::int64_t application_id = 0;
    std::string json;  // the whole event
};

// What a game server asks the service, as a service client (client_credentials), or a replica, without credentials.
class Service {
public:
    explicit Service(std::string base_url, std::string client_id = "", std::string client_secret = "");
    ~Service();
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

    // Asks whether users have rules. The answers have the order of the questions.
    Outcome<std::vector<bool>, Trouble> check(const std::vector<Question>& questions);
    // Passes the changes after this one on, until `handle` returns false. Goes on after lost connections. Blocks, so it
    // needs a thread of its own. An empty `after` begins with the oldest change that is kept.
    Outcome<Done, Trouble> follow(const std::string& after, const std::function<bool(const Change&)>& handle);
    // Ends all calls within about a second, from any thread, for good.
    void stop();

private:
    struct State;
    std::unique_ptr<State> state_;
};

// Verifies an event that a webhook of the service has sent. `signature` is the header Webhook-Signature, `body` the body
// as it came, `now` Unix seconds; 0: by the clock. Compare `Change::id` with the last one that you have handled: an event
// may come twice. An empty secret is refused with `signature`.
Outcome<Change, Refusal> verify_webhook(const std::string& signature, const std::string& body, const std::string& secret,
                                        std::int64_t now = 0);

}  // namespace sso
