// Package operator knows the people who sign in to the console: their roles, how they sign in, and their sessions.
package operator

import (
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

type Operator struct {
	ID          uuid.UUID
	Email, Name string
	Roles       map[uuid.UUID]domain.Role
}

func (o Operator) RoleIn(workspace uuid.UUID) domain.Role { return o.Roles[uuid.Nil] }

type Session struct {
	ID                                      uuid.UUID
	Operator                                Operator
	Method                                  string
	CreatedAt, SeenAt, SignedInAt, ExpiresAt time.Time
	Agent, Address                          string
	CSRF                                    string
}
