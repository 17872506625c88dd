package account

import (
	"github.com/google/uuid"
)

// Room returns how many of more new devices an account that already has some may still add. It bounds the
// database: removed devices are kept, and a vendor may list new ones each time.
func (s *Service) Room(account uuid.UUID, has, more int) int {
	return s.capacityLeft(account, s.opt.MaxDevices, has, more)
}

// RoomForSystems is Room for access systems.
func (s *Service) RoomForSystems(account uuid.UUID, has, more int) int {
	return s.capacityLeft(account, s.opt.MaxSystems, has, more)
}

func (s *Service) capacityLeft(account uuid.UUID, most, has, more int) int {
	room := max(0, most-has)
	if more <= room {
		return more
	}
	s.opt.Log.Warn(
		"the account exceeds its quota of devices or systems; the server ignores the excess",
		"connected_account_id",
		account,
		"stored",
		has,
		"ignored",
		more-room,
	)
	return room
}
