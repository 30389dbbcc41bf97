package trainingpod

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NetworkPolicy allows only workers of the job to connect to its workers, on any port. Webhooks refuse templates with the label
// that it selects by. Outgoing connections are not limited, because data and checkpoints may be anywhere.
func (b Blueprint) NetworkPolicy() *networkingv1.NetworkPolicy {
	workers := metav1.LabelSelector{MatchLabels: b.jobLabels()}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: b.objectMeta(b.unreadName("isolated")),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: workers,
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				From: []networkingv1.NetworkPolicyPeer{{PodSelector: &workers}},
			}},
		},
	}
}
