// Package phone keeps the simulated phones of user identities. A phone shows that a person has an app that could hold
// mobile credentials; the server has no such credentials. The package must not know devices, connected accounts,
// access systems, or HTTP.
package phone

import (
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// MaxPhones is the maximum number of phones of a user identity.
const MaxPhones = 100

// Operating systems of phones.
const (
	Android = "android"
	IOS     = "ios"
)

// Phone is a simulated phone.
type Phone struct {
	ID              uuid.UUID
	WorkspaceID     uuid.UUID
	OperatingSystem string // Android or IOS
	Model           string
	EndpointID      float64 // of the phone in the service that would issue its credentials (Seos TSM)
	CreatedAt       time.Time
}

// Service runs the operations of the domain.
type Service struct {
	db     *store.DB
	events *event.Service
}

// New creates a Service. db must be migrated.
func New(db *store.DB, events *event.Service) *Service { return &Service{db: db, events: events} }

func toPhone(r dbsqlc.Phone) Phone {
	return Phone{
		ID:              r.DeviceID,
		WorkspaceID:     r.WorkspaceID,
		OperatingSystem: r.OperatingSystem,
		Model:           r.DeviceModel,
		EndpointID:      r.SeosTsmEndpointID,
		CreatedAt:       r.CreatedAt.UTC(),
	}
}

func notFound(id string) *domain.Error {
	return &domain.Error{
		Kind:    domain.NotFound,
		Type:    "phone_not_found",
		Message: "Could not find a phone with this device_id.",
		Data:    map[string]any{"device_id": id},
	}
}

func identityNotFound(id string) *domain.Error {
	return &domain.Error{
		Kind:    domain.NotFound,
		Type:    "user_identity_not_found",
		Message: "Could not find a user identity with this user_identity_id.",
		Data:    map[string]any{"user_identity_id": id},
	}
}
