package eldest

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
)

// randomID is 128 random bits, as text.
func randomID() string {
	return hex.EncodeToString(randomBytes(16))
}

// randomBelow does not use the runtime's generator: before Go 1.20 it draws the same for every process, and pauses have
// to differ.
func randomBelow(n uint64) uint64 {
	return binary.BigEndian.Uint64(randomBytes(8)) % n
}

func randomBytes(n int) []byte {
	drawn := make([]byte, n)
	if _, err := rand.Read(drawn); err != nil {
		panic("eldest: this machine gives no random bytes: " + err.Error())
	}
	return drawn
}
