#include "sso/game.hpp"

#include <atomic>
#include <ctime>
#include <mutex>
#include <set>

#include "http.hpp"
#include "keys.hpp"
#include "session.hpp"
#include "stages.hpp"

namespace sso {

namespace {
const char* const token_name = "token";
const char* const guest_key_name = "guest_key";
constexpr long request_s = 15;
constexpr long sign_out_s = 3;  // the player does not wait for a service that is away

Player player_of(const Json& body, bool stored) {
    return {body["user_id"].as_text(), body["nick"].text(), body["guest"].is_true(), body["jwt"].text(),
            body["linked"].text(), stored};
}

Failure sign_in_needed(const std::string& why) { return {Reason::sign_in_needed, why, "", {}}; }

Failure signed_out_meanwhile() { return {Reason::cancelled, "the player has signed out meanwhile", "", {}}; }
}  // namespace

const char* name_of(Reason reason) {
    switch (reason) {
        case Reason::cancelled: return "cancelled";
        case Reason::denied: return "denied";
        case Reason::expired: return "expired";
        case Reason::closed: return "closed";
        case Reason::refused: return "refused";
        case Reason::banned: return "banned";
        case Reason::invalid: return "invalid";
        case Reason::no_guests: return "no_guests";
        case Reason::sign_in_needed: return "sign_in_needed";
        case Reason::unavailable: return "unavailable";
        case Reason::not_a_service: return "not_a_service";
    }
    return "";
}

struct Game::State {
    std::string base_url;
    Options options;
    std::unique_ptr<Store> store;
    std::mutex token_lock;  // held while the stored token changes; locked before the other
    std::mutex lock;        // of what follows
    class Call;
    std::optional<Player> player;
    std::set<Call*> running;

    // A call that runs.
    class Call {
    public:
        explicit Call(State& state) : state_(state) {
            const std::lock_guard<std::mutex> lock(state_.lock);
            state_.running.insert(this);
        }
        ~Call() {
            const std::lock_guard<std::mutex> lock(state_.lock);
            state_.running.erase(this);
        }
        std::atomic<bool> cancelled{false};
        std::atomic<bool> signed_out{false};  // it does not sign the player in again; set with both locks held

    private:
        State& state_;
    };

    std::optional<Player> current_player() {
        const std::lock_guard<std::mutex> guard(lock);
        return player;
    }

    Result<Player> use(const Player& next, const Call& call) {
        const std::lock_guard<std::mutex> guard(lock);
        if (call.signed_out) return signed_out_meanwhile();
        player = next;
        return next;
    }

    // Forgets the player and the stored token, which it returns, and ends the calls that run, but not other sign-outs.
    std::optional<std::string> forget(bool& removed) {
        const std::lock_guard<std::mutex> token_guard(token_lock);
        const auto token = store->get(token_name);
        removed = store->set(token_name, std::nullopt);
        const std::lock_guard<std::mutex> guard(lock);
        player.reset();
        for (Call* call : running) call->cancelled = call->signed_out = true;
        return token;
    }

    JsonWriter fields() const {
        JsonWriter writer;
        if (!options.factor.empty()) writer.add("factor", options.factor);
        if (options.application_id) writer.add("app_id", options.application_id);
        return writer;
    }

    Headers headers_of(const Player& user) const {
        return {"Authorization: Bearer " + user.jwt, "Factor: " + options.factor};
    }

    // The result is returned only once, so its token is stored before anything else.
    Result<Player> keep(const Json& body, const Call& call) {
        const std::string token = body["token"].text();
        {
            const std::lock_guard<std::mutex> guard(token_lock);
            if (!call.signed_out) return use(player_of(body, store->set(token_name, token)), call);
        }
        log_out(token);
        return signed_out_meanwhile();
    }

    // The token has ended.
    void drop_token(const Call& call) {
        const std::lock_guard<std::mutex> guard(token_lock);
        if (!call.signed_out) store->set(token_name, std::nullopt);
    }

    void log_out(const std::string& token) const {
        post(base_url + "/proxy/api/logout", JsonWriter().add("token", token).str(), {}, sign_out_s, nullptr);
    }

    Exchange ask(const char* path, const JsonWriter& body, const Call& call) const {
        return post(base_url + path, body.str(), {}, request_s, &call.cancelled);
    }

    Result<Player> accept(const Exchange& exchange, const Call& call) {
        if (exchange.broken != Broken::no || exchange.answer.body["status"].text() != "OK") return failure_of(exchange);
        return keep(exchange.answer.body, call);
    }

    // Runs a call that signs the player in. After a sign-out it fails as cancelled, whatever the service has answered.
    template <class Work>
    Result<Player> run(const Work& work) {
        const Call call(*this);
        const Result<Player> result = work(call);
        if (!result && call.signed_out) return signed_out_meanwhile();
        return result;
    }

    Result<Player> with_browser(const SignIn& how, const JsonWriter& body, const Headers& headers, const Call& call) {
        const auto session = Session::open(base_url, body, headers, how.sign, call.cancelled);
        if (!session) return session.failure();
        std::optional<Stages> stages;
        if (how.show_stage) stages.emplace(session->socket_url(), how.show_stage);
        how.show_link(session->link(), session->words());
        const auto result = session->result(call.cancelled);
        if (!result) {
            if (result.failure().reason == Reason::cancelled) session->close("Error");
            return result.failure();
        }
        const auto signed_in = keep(*result, call);
        session->close(signed_in ? "Success" : "Error");
        return signed_in;
    }

    Result<Player> with_stored_token(int tries, const Call& call) {
        const auto token = store->get(token_name);
        if (!token || token->empty()) return sign_in_needed("nothing is stored, or it cannot be read");
        while (true) {
            const Exchange exchange = ask("/proxy/api/login", fields().add("token", *token), call);
            if (exchange.broken == Broken::no && exchange.answer.status == 401) {  // after 403 the token has not ended
                drop_token(call);
                return sign_in_needed(exchange.answer.body["error"].text());
            }
            const auto result = accept(exchange, call);
            if (result) return result;
            if (result.failure().reason != Reason::unavailable || --tries <= 0) return result;  // the token stays
            if (!wait(1, call.cancelled)) return Failure{Reason::cancelled, "the player gave up", "", {}};
        }
    }

    Result<Player> as_guest(const Call& call) {
        const auto stored = store->get(guest_key_name);
        const auto key = stored ? Key::from_pem(*stored) : Key::new_guest_key();
        if (!key || (!stored && !store->set(guest_key_name, key->pem()))) {
            return Failure{Reason::invalid, "the key of the device cannot be read or stored", "", {}};
        }
        const std::string body = fields()
                                     .add("public_key", key->public_key())
                                     .add("ts", static_cast<std::int64_t>(std::time(nullptr)))
                                     .add("nonce", new_nonce())
                                     .str();
        const Exchange exchange =
            post(base_url + "/proxy/api/guest", body, {"Request-Sign: " + key->sign(body)}, request_s, &call.cancelled);
        if (exchange.broken == Broken::no && exchange.answer.status == 404) {
            return Failure{Reason::no_guests, "the service has no guests", "", {}};
        }
        if (exchange.broken != Broken::no || exchange.answer.body["status"].text() != "OK") return failure_of(exchange);
        return use(player_of(exchange.answer.body, true), call);  // a guest comes back by its key: no token is stored
    }
};

Game::Game(std::string base_url, Options options, std::unique_ptr<Store> store) : state_(std::make_unique<State>()) {
    state_->base_url = without_slash(std::move(base_url));
    state_->options = std::move(options);
    state_->store = std::move(store);
}

Game::~Game() = default;

void Game::cancel() {
    const std::lock_guard<std::mutex> lock(state_->lock);
    for (State::Call* call : state_->running) call->cancelled = true;
}

Result<Player> Game::sign_in(const SignIn& how) {
    return state_->run([&](const State::Call& call) { return state_->with_browser(how, state_->fields(), {}, call); });
}

Result<Player> Game::link(const SignIn& how) {
    const auto guest = state_->current_player();
    if (!guest || !guest->guest) return sign_in_needed("sign the guest in first");
    const JsonWriter fields = state_->fields().add("link", "1");
    const Headers headers = state_->headers_of(*guest);
    return state_->run([&](const State::Call& call) { return state_->with_browser(how, fields, headers, call); });
}

Result<Player> Game::resume(int tries) {
    return state_->run([&](const State::Call& call) { return state_->with_stored_token(tries, call); });
}

Result<Player> Game::sign_in_as_guest() {
    return state_->run([&](const State::Call& call) { return state_->as_guest(call); });
}

Result<Player> Game::sign_in_with_ticket(const std::string& provider, const std::string& ticket) {
    const JsonWriter fields = state_->fields().add("provider", provider).add("ticket", ticket);
    return state_->run([&](const State::Call& call) {
        return state_->accept(state_->ask("/proxy/api/ticket", fields, call), call);
    });
}

Result<bool> Game::may(std::int64_t application_id, const std::string& rule) {
    const auto player = state_->current_player();
    if (!player) return sign_in_needed("no player is signed in");
    State::Call call(*state_);
    const std::string questions = R"({"questions": [)" + JsonWriter().add("rule", rule).str() + "]}";
    const std::string body = JsonWriter().add("application_id", application_id).add_raw("data", questions).str();
    const Exchange exchange =
        post(state_->base_url + "/api/permissions/check", body, state_->headers_of(*player), request_s, &call.cancelled);
    if (exchange.broken != Broken::no || exchange.answer.body["status"].text() != "OK") return failure_of(exchange);
    const auto& answers = exchange.answer.body["data"].items();
    return !answers.empty() && answers.front()["allow"].is_true();
}

Result<Done> Game::sign_out() {
    bool removed = false;
    const auto token = state_->forget(removed);
    if (token && !token->empty()) state_->log_out(*token);  // a second sign-out does not end this request
    if (!removed) return Failure{Reason::invalid, "the stored token cannot be removed", "", {}};
    return Done{};
}

}  // namespace sso
