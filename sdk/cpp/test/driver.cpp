// The test program of this library: sso_game_driver BASE_URL FOLDER. The contract says what it reads and prints.
#include <chrono>
#include <iostream>
#include <mutex>
#include <thread>

#include "json.hpp"
#include "sso/game.hpp"

namespace {
using sso::Json;
using sso::JsonWriter;

void print(const JsonWriter& event) {
    static std::mutex one_at_a_time;  // stages come from another thread
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    std::cout << event.str() << std::endl;
}

void print(const sso::Failure& failure) {
    JsonWriter event;
    event.add("event", "failed").add("reason", sso::name_of(failure.reason)).add("record", failure.record);
    if (failure.ban) {
        JsonWriter ban;
        ban.add("reason", failure.ban->reason).add("appeal_url", failure.ban->appeal_url);
        if (failure.ban->until) ban.add("until", *failure.ban->until);
        event.add_raw("ban", ban.str());
    }
    print(event);
}

void print(const sso::Result<sso::Player>& result) {
    if (!result) return print(result.failure());
    print(JsonWriter()
              .add("event", "signed_in")
              .add("user_id", result->user_id)
              .add("nick", result->nick)
              .add_raw("guest", result->guest ? "true" : "false")
              .add("linked", result->linked)
              .add_raw("stored", result->stored ? "true" : "false"));
}

void with_browser(sso::Game& game, const Json& command, bool link) {
    std::thread player;
    sso::SignIn how;
    how.sign = command["sign"].is_true();
    how.show_link = [&](const std::string& url, const std::string& words) {
        print(JsonWriter().add("event", "show_link").add("url", url).add("words", words));
        if (command["cancel_after"].text() == "show_link") {
            player = std::thread([&game] {
                std::this_thread::sleep_for(std::chrono::milliseconds(500));
                game.cancel();
            });
        }
    };
    if (command["socket"].is_true()) {
        how.show_stage = [](const std::string& stage) { print(JsonWriter().add("event", "stage").add("stage", stage)); };
    }
    print(link ? game.link(how) : game.sign_in(how));
    if (player.joinable()) player.join();
}

void run(sso::Game& game, const Json& command) {
    const std::string& name = command["do"].text();
    const int tries = command.has("tries") ? static_cast<int>(command["tries"].number()) : 3;
    if (name == "sign_in" || name == "link") with_browser(game, command, name == "link");
    else if (name == "resume") print(game.resume(tries));
    else if (name == "guest") print(game.sign_in_as_guest());
    else if (name == "ticket") print(game.sign_in_with_ticket(command["provider"].text(), command["ticket"].text()));
    else if (name == "renew") {
        const auto result = game.resume();
        result ? print(JsonWriter().add("event", "renewed")) : print(result.failure());
    } else if (name == "check") {
        const auto result = game.may(static_cast<std::int64_t>(command["application_id"].number()), command["rule"].text());
        result ? print(JsonWriter().add("event", "checked").add_raw("allow", *result ? "true" : "false"))
               : print(result.failure());
    } else if (name == "sign_out") {
        const auto result = game.sign_out();
        result ? print(JsonWriter().add("event", "signed_out")) : print(result.failure());
    }
}
}  // namespace

int main(int count, char** arguments) {
    if (count != 3) {
        std::cerr << "usage: " << arguments[0] << " BASE_URL FOLDER\n";
        return 2;
    }
    std::unique_ptr<sso::Game> game;
    for (std::string line; std::getline(std::cin, line);) {
        const auto command = Json::parse(line);
        if (!command) return 2;
        if (!game) {
            sso::Options options;
            options.factor = (*command)["factor"].text();
            game = std::make_unique<sso::Game>(arguments[1], options,
                                               sso::encrypted_store(sso::file_store(arguments[2]), sso::aes_gcm("a key of the tests")));
        }
        run(*game, *command);
    }
}
