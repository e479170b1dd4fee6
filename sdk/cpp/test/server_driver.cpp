// The test program of the server library: sso_server_driver BASE_URL FOLDER. The contract says what it reads and prints.
#include <algorithm>
#include <cstdlib>
#include <future>
#include <iostream>

#include "json.hpp"
#include "sso/server.hpp"

namespace {
using sso::Json;
using sso::JsonWriter;

void print(const JsonWriter& event) { std::cout << event.str() << std::endl; }

void print(sso::Refusal refusal) { print(JsonWriter().add("event", "refused").add("reason", sso::name_of(refusal))); }

void print(const sso::Trouble& trouble) {
    print(JsonWriter().add("event", "failed").add("reason", sso::name_of(trouble.problem)).add("message", trouble.message));
}

void verify(sso::Verifier& verifier, const Json& command) {
    std::optional<std::string_view> factor;
    if (command.has("factor")) factor = command["factor"].text();
    const auto user = verifier.verify(command["jwt"].text(), factor, command["now"].integer());
    user ? print(JsonWriter().add("event", "verified").add("user_id", user->user_id).add("auth", user->auth))
         : print(user.failure());
}

void check(sso::Service& service, const Json& command) {
    std::vector<sso::Question> questions;
    for (const Json& item : command["questions"].items()) {
        questions.push_back({item["user_id"].text(), item["application_id"].integer(), item["rule"].text()});
    }
    // Not part of the contract: several callers ask at the same time.
    std::vector<std::future<sso::Outcome<std::vector<bool>, sso::Trouble>>> others;
    for (auto number = command["callers"].integer(); number > 1; --number) {
        others.push_back(std::async(std::launch::async, [&] { return service.check(questions); }));
    }
    const auto answers = service.check(questions);
    const auto name = [](const auto& result) { return std::string(result ? "" : sso::name_of(result.failure().problem)); };
    for (auto& other : others) {
        const std::string got = name(other.get());
        if (got != name(answers)) {
            std::cerr << "one caller has got '" << name(answers) << "', another one '" << got << "'\n";
            std::exit(3);
        }
    }
    if (!answers) return print(answers.failure());
    std::string list;
    for (const bool answer : *answers) list += (list.empty() ? "" : ", ") + std::string(answer ? "true" : "false");
    print(JsonWriter().add("event", "checked").add_raw("answers", "[" + list + "]"));
}

void follow(sso::Service& service, const Json& command) {
    auto left = command["count"].integer();
    const auto end = service.follow(command["after"].text(), [&left](const sso::Change& change) {
        if (change.type == "reset") {
            print(JsonWriter().add("event", "reset"));
            return true;
        }
        print(JsonWriter().add("event", "change").add("id", change.id).add("type", change.type));
        return --left > 0;
    });
    if (!end) print(end.failure());
}

void webhook(const Json& command) {
    std::string signature;
    for (const char* name : {"Webhook-Signature", "webhook-signature"}) signature += command["headers"][name].text();
    const auto event = sso::verify_webhook(signature, command["body"].text(), command["secret"].text(),
                                           command["now"].integer());
    event ? print(JsonWriter().add("event", "webhook").add("id", event->id).add("type", event->type))
          : print(event.failure());
}
}  // namespace

int main(int count, char** arguments) {
    if (count != 3) {
        std::cerr << "usage: " << arguments[0] << " BASE_URL FOLDER\n";
        return 2;
    }
    std::unique_ptr<sso::Verifier> verifier;
    auto service = std::make_unique<sso::Service>(arguments[1]);
    for (std::string line; std::getline(std::cin, line);) {
        const auto command = Json::parse(line);
        if (!command) return 2;
        const std::string& name = (*command)["do"].text();
        if (name == "verify") {
            if (!verifier) verifier = std::make_unique<sso::Verifier>(arguments[1], (*command)["issuer"].text());
            verify(*verifier, *command);
        } else if (name == "credentials") {
            service = std::make_unique<sso::Service>(arguments[1], (*command)["client_id"].text(),
                                                     (*command)["client_secret"].text());
        } else if (name == "check") {
            check(*service, *command);
        } else if (name == "follow") {
            follow(*service, *command);
        } else if (name == "webhook") {
            webhook(*command);
        }
    }
}
