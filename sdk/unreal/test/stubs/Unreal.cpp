#include "Unreal.h"

#include <condition_variable>
#include <deque>
#include <mutex>

namespace {
std::mutex TasksLock;
std::condition_variable HasTask;
std::deque<TFunction<void()>> Tasks;
UEngine Engine;
}  // namespace

UEngine* GEngine = &Engine;
const FColor FColor::Black{0, 0, 0, 255};
const FColor FColor::White{255, 255, 255, 255};

void AsyncTask(ENamedThreads::Type, TFunction<void()> Task) {
    const std::lock_guard<std::mutex> Lock(TasksLock);
    Tasks.push_back(std::move(Task));
    HasTask.notify_one();
}

void RunGameThreadTask() {
    TFunction<void()> Task;
    {
        std::unique_lock<std::mutex> Lock(TasksLock);
        HasTask.wait(Lock, [] { return !Tasks.empty(); });
        Task = std::move(Tasks.front());
        Tasks.pop_front();
    }
    Task();
}

std::string ToUtf8Stub(const TCHAR* Text) {
    std::string Out;
    for (; *Text; ++Text) {
        const auto Code = static_cast<unsigned>(*Text);
        const auto Add = [&Out](unsigned Byte) { Out += static_cast<char>(Byte); };
        if (Code < 0x80) {
            Add(Code);
        } else if (Code < 0x800) {
            Add(0xC0 | Code >> 6), Add(0x80 | (Code & 0x3F));
        } else if (Code < 0x10000) {
            Add(0xE0 | Code >> 12), Add(0x80 | (Code >> 6 & 0x3F)), Add(0x80 | (Code & 0x3F));
        } else {
            Add(0xF0 | Code >> 18), Add(0x80 | (Code >> 12 & 0x3F)), Add(0x80 | (Code >> 6 & 0x3F)), Add(0x80 | (Code & 0x3F));
        }
    }
    return Out;
}

std::wstring FromUtf8Stub(const char* Text) {
    std::wstring Out;
    while (*Text) {
        const auto First = static_cast<unsigned char>(*Text++);
        const int More = First < 0x80 ? 0 : First < 0xE0 ? 1 : First < 0xF0 ? 2 : 3;
        unsigned Code = More == 0 ? First : First & (0x3F >> More);
        for (int Byte = 0; Byte < More && *Text; ++Byte) Code = Code << 6 | (static_cast<unsigned char>(*Text++) & 0x3F);
        Out += static_cast<TCHAR>(Code);
    }
    return Out;
}

UTexture2D* UTexture2D::CreateTransient(int32 Width, int32 Height, EPixelFormat) {
    auto* Texture = new UTexture2D;
    FTexture2DMipMap Mip;
    Mip.BulkData.Pixels.resize(static_cast<std::size_t>(Width) * static_cast<std::size_t>(Height));
    Texture->Data_.Mips.Add(std::move(Mip));
    return Texture;
}
