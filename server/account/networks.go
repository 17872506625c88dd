package account

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
)

// Network is the radio network of a connected gateway: a Z-Wave home, or the network of a Zigbee coordinator. The
// published API does not say what a network is.
type Network struct {
	// ID is that of the oldest account that reaches the gateway.
	ID          uuid.UUID
	WorkspaceID uuid.UUID
	Name        string
	CreatedAt   time.Time
}

// ListNetworks lists the networks of a workspace, oldest first. An account whose gateway has not been reached yet has
// none.
func (s *Service) ListNetworks(ctx context.Context, p domain.Principal) ([]Network, error) {
	rows, err := s.db.ListNetworks(ctx, p.WorkspaceID)
	if err != nil {
		return nil, fmt.Errorf("list the networks: %w", err)
	}
	out := []Network{}
	for _, r := range rows {
		if p.CanSee(r.ConnectedAccountID) {
			out = append(out, Network{r.ConnectedAccountID, p.WorkspaceID, r.DisplayName, r.CreatedAt})
		}
	}
	return out, nil
}

// GetNetwork returns a network. It fails with NotFound.
func (s *Service) GetNetwork(ctx context.Context, p domain.Principal, id string) (Network, error) {
	all, err := s.ListNetworks(ctx, p)
	if err != nil {
		return Network{}, err
	}
	for _, n := range all {
		if domain.IsID(id, n.ID) {
			return n, nil
		}
	}
	return Network{}, &domain.Error{
		Kind:    domain.NotFound,
		Type:    "network_not_found",
		Message: "Could not find a network with this network_id.",
		Data:    map[string]any{"network_id": id},
	}
}
