//! Every source of keys, against scripted services.
