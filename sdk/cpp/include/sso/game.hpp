// Signs players in, keeps them signed in, and asks what they may do.
//
// Calls block, and are meant for a thread of their own. `Game::may`, `Game::sign_out` and `Game::cancel` may be called from
// any thread while another call runs. No exception leaves this interface: what fails is in the result.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "sso/result.hpp"
#include "sso/store.hpp"
#include "sso/trust.hpp"

namespace sso {

enum class Reason {
    cancelled,       // the player gave up in the game
    denied,          // the player pressed "This was not me"
    expired,         // nobody signed in in time
    closed,          // the session was closed elsewhere
    refused,         // the service refused the request
    banned,          // see Failure::ban
    invalid,         // the game sent a wrong field
    no_guests,       // the service has no guests
    sign_in_needed,  // nothing is stored, or what is stored has ended
    unavailable,     // the service cannot be reached
    not_a_service,   // the address does not belong to the service
};

const char* name_of(Reason reason);

struct Ban {
    std::string reason;
    std::optional<std::int64_t> until;  // Unix seconds; none: for ever
    std::string appeal_url;
};

struct Failure {
    Reason reason;
    std::string message;  // for developers; a game shows the player a text of its own for each reason
    std::string record;   // the id of the service's record of a refusal, if it gave one
    std::optional<Ban> ban;
};

template <class T>
using Result = Outcome<T, Failure>;

struct Player {
    std::string user_id;
    std::string nick;
    bool guest = false;
    std::string jwt;     // for the game's own servers, which verify it; empty without a factor
    std::string linked;  // after `link`: "upgraded", or "merged" into an account that existed
    bool stored = true;  // false: the token could not be stored, so the player must sign in again at the next start
};

struct Options {
    std::string factor;  // a name of this device, of the game's choice; it belongs to each user JWT
    std::int64_t application_id = 0;
};

struct SignIn {
    // Gets the link to open, or to show as a QR code, and the words to show next to it.
    std::function<void(const std::string& url, const std::string& words)> show_link;
    // Gets each stage of the page, on another thread; it opens a WebSocket.
    std::function<void(const std::string& stage)> show_stage;
    bool sign = false;  // signs the requests with a new key, for games whose address is shared
};

class Game {
public:
    Game(std::string base_url, Options options, std::unique_ptr<Store> store);
    ~Game();
    Game(const Game&) = delete;
    Game& operator=(const Game&) = delete;

    // Signs the player in with a browser.
    Result<Player> sign_in(const SignIn& how);
    // Signs the guest in with a browser. The player keeps what the guest has.
    Result<Player> link(const SignIn& how);
    // Signs the player in with the stored token, without a browser; this also renews the tokens.
    Result<Player> resume(int tries = 3);
    // Signs a guest in with the key of this device, which is made at the first call.
    Result<Player> sign_in_as_guest();
    // Signs the player in with the ticket of a store, a text.
    Result<Player> sign_in_with_ticket(const std::string& provider, const std::string& ticket);
    // Asks whether the player may do something.
    Result<bool> may(std::int64_t application_id, const std::string& rule);
    // Forgets the player and ends the sign-in. The key of a guest stays: it is the only way back to its progress. It also
    // ends the calls that run, but not another sign-out, so that none signs the player in again. It waits for the service
    // for three seconds at most.
    Result<Done> sign_out();

    // Ends the calls that run, but not a sign-out, within about a second: the player gave up. A sign-in with a browser then
    // tells the service, for three seconds at most. A name that the system cannot resolve takes as long as the system lets
    // it.
    void cancel();

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace sso
