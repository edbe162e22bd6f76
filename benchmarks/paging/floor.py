import streamlit as st

st.line_chart([1, 5, 2, 6, 2, 1])
