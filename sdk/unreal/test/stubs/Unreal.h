// Stubs of the types of Unreal that the plugin uses: enough to compile it and to run it without the engine.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#define UCLASS(...)
#define USTRUCT(...)
#define UENUM(...)
#define UPROPERTY(...)
#define UFUNCTION(...)
// Only the subsystem uses Super.
#define GENERATED_BODY() using Super = UGameInstanceSubsystem;
#define TEXT(Literal) L##Literal
#define IMPLEMENT_MODULE(Module, Name)

class UGameInstanceSubsystem;

using TCHAR = wchar_t;
using uint8 = std::uint8_t;
using int32 = std::int32_t;
using int64 = std::int64_t;

class FString {
public:
    FString() = default;
    FString(const TCHAR* Text) : Text_(Text) {}
    const TCHAR* operator*() const { return Text_.c_str(); }
    bool IsEmpty() const { return Text_.empty(); }

private:
    std::wstring Text_;
};

std::string ToUtf8Stub(const TCHAR* Text);
std::wstring FromUtf8Stub(const char* Text);
#define TCHAR_TO_UTF8(Text) ToUtf8Stub(Text).c_str()
#define UTF8_TO_TCHAR(Text) FromUtf8Stub(Text).c_str()

template <class T>
using TFunction = std::function<T>;

template <class T>
typename std::remove_reference<T>::type&& MoveTemp(T&& Value) {
    return static_cast<typename std::remove_reference<T>::type&&>(Value);
}

template <class T>
class TArray {
public:
    void Add(T Item) { Items_.push_back(std::move(Item)); }
    template <class Predicate>
    void RemoveAll(Predicate Matches) {
        std::vector<T> Kept;
        for (T& Item : Items_) {
            if (!Matches(Item)) Kept.push_back(std::move(Item));
        }
        Items_.swap(Kept);
    }
    void Empty() { Items_.clear(); }
    T& operator[](int32 At) { return Items_[static_cast<std::size_t>(At)]; }
    auto begin() { return Items_.begin(); }
    auto end() { return Items_.end(); }

private:
    std::vector<T> Items_;
};

// Objects, and weak pointers that notice their end.
class UObject {
public:
    virtual ~UObject() = default;
    std::shared_ptr<int> Life = std::make_shared<int>();
};

template <class T>
class TWeakObjectPtr {
public:
    TWeakObjectPtr(T* Object = nullptr) : Object_(Object), Life_(Object ? Object->Life : nullptr) {}
    T* Get() const { return Life_.expired() ? nullptr : Object_; }

private:
    T* Object_;
    std::weak_ptr<int> Life_;
};

template <class T>
T* NewObject() {
    return new T;
}

// Threads, and the game thread, which carries out tasks when the program lets it.
enum class EAsyncExecution { Thread };
namespace ENamedThreads {
enum Type { GameThread };
}

struct FTimespan {
    static FTimespan FromMilliseconds(double Count) { return {std::chrono::duration<double, std::milli>(Count)}; }
    std::chrono::duration<double, std::milli> Duration;
};

template <class T>
class TFuture {
public:
    explicit TFuture(std::future<T> Future) : Future_(std::move(Future)) {}
    bool IsReady() const { return Future_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
    bool WaitFor(const FTimespan& Time) const { return Future_.wait_for(Time.Duration) == std::future_status::ready; }

private:
    std::future<T> Future_;
};

template <class Work>
TFuture<void> Async(EAsyncExecution, Work Function) {
    return TFuture<void>(std::async(std::launch::async, std::move(Function)));
}

void AsyncTask(ENamedThreads::Type Thread, TFunction<void()> Task);
// Waits for a task and carries it out.
void RunGameThreadTask();

// Delegates.
template <class... Parameters>
class TDelegateStub {
public:
    void AddLambda(TFunction<void(Parameters...)> Handler) { Handlers_.push_back(std::move(Handler)); }
    void Broadcast(Parameters... Values) const {
        for (const auto& Handler : Handlers_) Handler(Values...);
    }

private:
    std::vector<TFunction<void(Parameters...)>> Handlers_;
};
#define DECLARE_DYNAMIC_MULTICAST_DELEGATE_TwoParams(Name, A, NameA, B, NameB) using Name = TDelegateStub<A, B>;
#define DECLARE_DYNAMIC_MULTICAST_DELEGATE_FiveParams(Name, A, NameA, B, NameB, C, NameC, D, NameD, E, NameE) \
    using Name = TDelegateStub<A, B, C, D, E>;

// The engine.
struct FSubsystemCollectionBase {};
class UGameInstanceSubsystem : public UObject {
public:
    virtual void Initialize(FSubsystemCollectionBase&) {}
    virtual void Deinitialize() {}
};

class UGameInstance : public UObject {
public:
    template <class T>
    T* GetSubsystem() {
        return static_cast<T*>(Subsystem.get());
    }
    std::unique_ptr<UGameInstanceSubsystem> Subsystem;
};

class UWorld : public UObject {
public:
    UGameInstance* GetGameInstance() { return Instance; }
    UGameInstance* Instance = nullptr;
};

enum class EGetWorldErrorMode { LogAndReturnNull };
class UEngine : public UObject {
public:
    UWorld* GetWorldFromContextObject(UObject* Object, EGetWorldErrorMode) { return static_cast<UWorld*>(Object); }
};
extern UEngine* GEngine;

class UBlueprintAsyncActionBase : public UObject {
public:
    virtual void Activate() {}
    void RegisterWithGameInstance(UObject*) {}
    void SetReadyToDestroy() { bIsReadyToDestroy = true; }
    bool bIsReadyToDestroy = false;
};

struct FPlatformProcess {
    static void LaunchURL(const TCHAR*, const TCHAR*, FString*) {}
    static void Sleep(float Seconds) { std::this_thread::sleep_for(std::chrono::duration<float>(Seconds)); }
};

struct FGuid {
    static FGuid NewGuid() { return {}; }
    FString ToString() const { return TEXT("7E9C4F0E4F0E4F5C9D1F6F8F2B0F7A11"); }
};

struct FPaths {
    static FString ProjectSavedDir() { return TEXT("Saved"); }
    static FString Combine(const FString& Folder, const FString& Name) {
        return FString((std::wstring(*Folder) + TEXT("/") + *Name).c_str());
    }
    static FString ConvertRelativePathToFull(const FString& Path) { return Path; }
};

// Textures.
struct FColor {
    uint8 B, G, R, A;
    static const FColor Black, White;
};
enum EPixelFormat { PF_B8G8R8A8 };
enum TextureFilter { TF_Nearest };
enum { LOCK_READ_WRITE };

struct FBulkDataStub {
    void* Lock(int) { return Pixels.data(); }
    void Unlock() {}
    std::vector<FColor> Pixels;
};
struct FTexture2DMipMap {
    FBulkDataStub BulkData;
};
struct FTexturePlatformData {
    TArray<FTexture2DMipMap> Mips;
};

class UTexture2D : public UObject {
public:
    static UTexture2D* CreateTransient(int32 Width, int32 Height, EPixelFormat);
    FTexturePlatformData* GetPlatformData() { return &Data_; }
    void UpdateResource() {}
    TextureFilter Filter = TF_Nearest;

private:
    FTexturePlatformData Data_;
};
