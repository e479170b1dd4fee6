#include "Engine/Texture2D.h"
#include "SsoConversions.h"
#include "SsoSubsystem.h"
#include "sso/qr.hpp"

UTexture2D* USsoSubsystem::MakeQrCode(const FString& Url)
{
	const std::vector<std::vector<bool>> Rows = sso::qr_code(ToUtf8(Url));
	if (Rows.empty())
	{
		return nullptr;
	}
	const int32 Margin = 4;
	const int32 Side = static_cast<int32>(Rows.size()) + 2 * Margin;
	UTexture2D* Texture = UTexture2D::CreateTransient(Side, Side, PF_B8G8R8A8);
	if (!Texture)
	{
		return nullptr;
	}
	Texture->Filter = TF_Nearest;
	FTexture2DMipMap& Mip = Texture->GetPlatformData()->Mips[0];
	FColor* Pixels = static_cast<FColor*>(Mip.BulkData.Lock(LOCK_READ_WRITE));
	for (int32 Row = 0; Row < Side; ++Row)
	{
		for (int32 Column = 0; Column < Side; ++Column)
		{
			const int32 Down = Row - Margin;
			const int32 Right = Column - Margin;
			const bool bInside = Down >= 0 && Right >= 0 && Down < Side - 2 * Margin && Right < Side - 2 * Margin;
			Pixels[Row * Side + Column] = bInside && Rows[Down][Right] ? FColor::Black : FColor::White;
		}
	}
	Mip.BulkData.Unlock();
	Texture->UpdateResource();
	return Texture;
}
