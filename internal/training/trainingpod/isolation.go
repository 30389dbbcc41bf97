package trainingpod

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NetworkPolicy lets workers of the job connect to each other, on any port, and nobody else. Templates cannot have the label that
// it selects by. What workers connect to is not limited: data and stores of checkpoints are anywhere.
func (b Blueprint) NetworkPolicy() *networkingv1.NetworkPolicy {
	workers := metav1.LabelSelector{MatchLabels: b.labels()}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: b.meta(b.unreadName("isolated")),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: workers,
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				From: []networkingv1.NetworkPolicyPeer{{PodSelector: &workers}},
			}},
		},
	}
}
