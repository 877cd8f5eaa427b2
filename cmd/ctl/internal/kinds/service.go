package kinds

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/internal/cli"
)

// Services returns the kind of services.
func Services() Kind[*api.Service] {
	return Kind[*api.Service]{
		Noun:   "service",
		Number: holdfast.Kind_KIND_SERVICE,
		Unwrap: (*holdfast.Object).GetService,
		View: cli.View[*api.Service]{
			ID:   (*api.Service).GetID,
			Name: serviceName,
			Columns: []cli.Column[*api.Service]{
				column("ID", (*api.Service).GetID),
				column("NAME", serviceName),
				column("MODE", ServiceMode),
				column("IMAGE", serviceImage),
				column("PORTS", servicePorts),
			},
		},
		Labels: func(s *api.Service) map[string]string { return s.Spec.Annotations.Labels },
		Get: func(ctx context.Context, c *client.Client, id string) (*api.Service, error) {
			r, err := c.Control().GetService(ctx, &api.GetServiceRequest{ServiceID: id})
			return r.GetService(), err
		},
		Remove: func(ctx context.Context, c *client.Client, id string) error {
			_, err := c.Control().RemoveService(ctx, &api.RemoveServiceRequest{ServiceID: id})
			return err
		},
	}
}

// Status is how many tasks a service has.
type Status = api.ListServiceStatusesResponse_ServiceStatus

// ServicesWithReplicas is Services with a column for the tasks that run.
func ServicesWithReplicas(statuses map[string]*Status) Kind[*api.Service] {
	k := Services()
	replicas := column("REPLICAS", func(s *api.Service) string { return formatReplicas(s, statuses[s.ID]) })
	at := slices.IndexFunc(k.View.Columns, func(c cli.Column[*api.Service]) bool { return c.Title == "IMAGE" })
	k.View.Columns = slices.Insert(k.View.Columns, at, replicas)
	return k
}

func formatReplicas(s *api.Service, status *Status) string {
	text := fmt.Sprintf("%d/%d", status.GetRunningTasks(), status.GetDesiredTasks())
	if job := s.Spec.GetReplicatedJob(); job != nil {
		text += fmt.Sprintf(" (%d/%d completed)", status.GetCompletedTasks(), job.TotalCompletions)
	}
	return text
}

func serviceName(s *api.Service) string { return s.Spec.Annotations.Name }

// ServiceMode names a service's mode as --mode does.
func ServiceMode(s *api.Service) string {
	switch s.Spec.Mode.(type) {
	case *api.ServiceSpec_Global:
		return "global"
	case *api.ServiceSpec_ReplicatedJob:
		return "replicated-job"
	case *api.ServiceSpec_GlobalJob:
		return "global-job"
	default:
		return "replicated"
	}
}

func serviceImage(s *api.Service) string { return s.Spec.Task.GetContainer().GetImage() }

// servicePorts shows the ports that were arranged, else those that are asked for.
func servicePorts(s *api.Service) string {
	ports := s.Endpoint.GetPorts()
	if len(ports) == 0 {
		ports = s.Spec.Endpoint.GetPorts()
	}
	var all []string
	for _, p := range ports {
		if p.PublishedPort == 0 {
			all = append(all, fmt.Sprintf("%d/%s", p.TargetPort, lower(p.Protocol.String())))
			continue
		}
		all = append(all, fmt.Sprintf("*:%d->%d/%s", p.PublishedPort, p.TargetPort, lower(p.Protocol.String())))
	}
	return strings.Join(all, ", ")
}
