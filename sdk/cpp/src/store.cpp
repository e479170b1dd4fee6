#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "sso/store.hpp"

namespace sso {

namespace {
namespace fs = std::filesystem;

// Texts are UTF-8 everywhere, on Windows too.
fs::path path_of(const std::string& text) {
#ifdef __cpp_char8_t
    return fs::path(std::u8string(text.begin(), text.end()));
#else
    return fs::u8path(text);
#endif
}

class FileStore : public Store {
public:
    explicit FileStore(const std::string& folder) : folder_(path_of(folder)) {
        std::error_code error;
        fs::create_directories(folder_, error);
    }

    std::optional<std::string> get(const std::string& name) override {
        std::ifstream file(folder_ / name, std::ios::binary);
        if (!file) return is_there(name) ? std::optional<std::string>("") : std::nullopt;
        return std::string(std::istreambuf_iterator<char>(file), {});
    }

    // Writes a new file that takes the place of the old one, so that a crash loses neither.
    bool set(const std::string& name, const std::optional<std::string>& value) override {
        std::error_code error;
        if (!value) {
            fs::remove(folder_ / name, error);
            return !error;
        }
        const fs::path draft = folder_ / (name + ".new");
        fs::remove(draft, error);
        {
            std::ofstream file(draft, std::ios::binary);
            fs::permissions(draft, fs::perms::owner_read | fs::perms::owner_write, error);
            file << *value;
            if (!file.flush()) return false;
        }
        fs::rename(draft, folder_ / name, error);
        return !error;
    }

private:
    // If that cannot be told, something may be there, which must not be overwritten.
    bool is_there(const std::string& name) const {
        std::error_code error;
        return fs::symlink_status(folder_ / name, error).type() != fs::file_type::not_found;
    }

    fs::path folder_;
};
}  // namespace

std::unique_ptr<Store> file_store(const std::string& folder) { return std::make_unique<FileStore>(folder); }

}  // namespace sso
