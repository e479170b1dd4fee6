package sso

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"sync"
	"time"
)

const (
	maxKeySetAge   = 300 * time.Second // a key that was retired is forgotten after this time
	unknownKeyTime = 10 * time.Second  // unknown keys fetch the set again at most once in this time
	fetchRetryTime = 5 * time.Second   // after a fetch that failed
	fetchTimeout   = 5 * time.Second
)

type publicKey struct {
	algorithm string
	verify    func(signed, signature []byte) bool
}

// A keyCache has the public keys of the service. An old set stays usable while the service is away.
type keyCache struct {
	url    string
	client *http.Client

	mutex     sync.Mutex
	keys      map[string]publicKey // nil before the first fetch
	fetchedAt time.Time
	retryAt   time.Time
	unknownAt time.Time
	fetching  chan struct{} // is closed when the fetch has ended
}

func (c *keyCache) find(ctx context.Context, kid string, now time.Time) (publicKey, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	isOld := c.keys == nil || now.Sub(c.fetchedAt) >= maxKeySetAge || now.Before(c.fetchedAt)
	isFetched := isOld && !now.Before(c.retryAt)
	if isFetched {
		c.fetch(now)
	}
	if isFetched || c.keys == nil {
		c.wait(ctx)
	}
	if c.keys == nil {
		return publicKey{}, refuse(Unavailable, "the keys of the service cannot be fetched")
	}
	if _, known := c.keys[kid]; !known && !isFetched {
		if !now.Before(c.unknownAt) {
			c.unknownAt = now.Add(unknownKeyTime)
			c.fetch(now)
		}
		c.wait(ctx)
	}
	key, known := c.keys[kid]
	if !known {
		return publicKey{}, refuse(UnknownKey, "the service has no such key")
	}
	return key, nil
}

// fetch begins a fetch, unless one is under way. Verifications that need no new set go on with the old one.
func (c *keyCache) fetch(now time.Time) {
	c.retryAt = now.Add(fetchRetryTime)
	if c.fetching != nil {
		return
	}
	done := make(chan struct{})
	c.fetching = done
	go func() {
		keys := fetchKeys(c.client, c.url)
		c.mutex.Lock()
		defer c.mutex.Unlock()
		if keys != nil {
			c.keys, c.fetchedAt, c.retryAt = keys, now, time.Time{}
		}
		c.fetching = nil
		close(done)
	}()
}

// wait lets go of the mutex until the fetch that is under way has ended.
func (c *keyCache) wait(ctx context.Context) {
	if done := c.fetching; done != nil {
		c.mutex.Unlock()
		defer c.mutex.Lock()
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
}

// fetchKeys returns nil if the set cannot be fetched. The fetch does not end with the request that needed it.
func fetchKeys(client *http.Client, url string) map[string]publicKey {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil
	}
	request.Close = true // one connection each: a kept one may be dead, and a second request would be sent
	status, content, err := exchange(client, request)
	if err != nil || status != http.StatusOK {
		return nil
	}
	var set struct{ Keys []jwk }
	if json.Unmarshal(content, &set) != nil || set.Keys == nil {
		return nil
	}
	keys := map[string]publicKey{}
	for _, item := range set.Keys {
		if key, ok := item.load(); ok && item.Kid != "" {
			keys[item.Kid] = key
		}
	}
	return keys
}

type jwk struct{ Kid, Kty, Crv, N, E, X, Y string }

// load returns false for kinds of keys that this version does not know.
func (k jwk) load() (publicKey, bool) {
	x, errX := base64.RawURLEncoding.DecodeString(k.X)
	y, errY := base64.RawURLEncoding.DecodeString(k.Y)
	n, errN := base64.RawURLEncoding.DecodeString(k.N)
	e, errE := base64.RawURLEncoding.DecodeString(k.E)
	if errX != nil || errY != nil || errN != nil || errE != nil {
		return publicKey{}, false
	}
	switch {
	case k.Kty == "RSA" && len(n) >= 256 && len(e) > 0 && len(e) <= 4:
		key := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
		return publicKey{"RS256", func(signed, signature []byte) bool {
			digest := sha256.Sum256(signed)
			return rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature) == nil
		}}, true
	case k.Kty == "EC" && k.Crv == "P-256":
		key := &ecdsa.PublicKey{Curve: elliptic.P256(), X: new(big.Int).SetBytes(x), Y: new(big.Int).SetBytes(y)}
		if !key.Curve.IsOnCurve(key.X, key.Y) {
			return publicKey{}, false
		}
		return publicKey{"ES256", func(signed, signature []byte) bool {
			if len(signature) != 64 {
				return false
			}
			digest := sha256.Sum256(signed)
			return ecdsa.Verify(key, digest[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:]))
		}}, true
	case k.Kty == "OKP" && k.Crv == "Ed25519" && len(x) == ed25519.PublicKeySize:
		return publicKey{"EdDSA", func(signed, signature []byte) bool {
			return ed25519.Verify(ed25519.PublicKey(x), signed, signature)
		}}, true
	}
	return publicKey{}, false
}
